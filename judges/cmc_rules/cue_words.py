"""The cue words of the match judge, in folded text ("isn't" written "is not").

A table holds regular expressions, separated by ``|`` or by lines; an indented line continues the one before it. To teach the
judge a wording, add it. Leave out a wording that may mean something else: what the rules do not recognise is undecided.
"""

from __future__ import annotations

import re

from benchmarks.values.name_words import word_set

_CONTINUED = re.compile(r"\n +")


def _table(entries: str) -> re.Pattern[str]:
    """Return the pattern that finds entries as whole words; in Chinese and Japanese, which have no spaces, anywhere."""
    flat = "|".join(filter(None, _CONTINUED.sub("", entries).split("\n")))
    return re.compile(rf"(?<![^\W_\u3040-\u9fff])(?:{flat})(?:(?<=[\u3040-\u9fff])|(?![^\W_\u3040-\u9fff])|(?<=[:=]))")


# The names of an image, a text, and of what they do.
IMAGE = _table("""
images?|charts?|figures?|graphs?|pictures?|diagrams?|plots?|maps?|photo(?:s|graphs?)?|visuals?|drawings?|illustrations?
screenshots?|x-?rays?|dashboards?|flow ?charts?|receipts?|posters?|infographics?|floor ?plans?|scans?|图表|图片|图像|图|bild
grafik|diagramm|graphique|imagen|gráfico|graphik|画像|グラフ
""")
TEXT = _table("""
texts?|textual|passages?|paragraphs?|descriptions?|snippets?|documents?|articles?|captions?|context|文字|文本|文章|段落
passage|texto|texte|(?<=the )(?:report|note|e-?mail|memo|manual|statement)|テキスト|本文
""")
REPORTING = _table(r"""
say|says|said|stat(?:e|es|ed|ing)|mention(?:s|ed|ing)?|claim(?:s|ed|ing)?|report(?:s|ed|ing)?|suggest(?:s|ed|ing)?
indicat(?:e|es|ed|ing)|giv(?:e|es|en|ing)|gave|show(?:s|ed|n|ing)?|list(?:s|ed|ing)?|depict(?:s|ed|ing)?|displays?|displayed
provid(?:e|es|ed)|specif(?:y|ies|ied)|assert(?:s|ed)?|cit(?:e|es|ed)|not(?:es|ed)|has|have|reads?|puts?|impl(?:y|ies|ied)
support(?:s|ed)?|contains?|describ(?:e|es|ed)|value|names?|identif\w+|refers?(?: to)?|makes? clear|confirms?|reveals?
seems? to say|evidence|according to|as per|per|laut|selon|según|zeigt|sagt|nennt|gibt|montre|indique|dit|muestra|dice|indica
显示|说|は|によると
""")
_CONCEDED = "although|though|even though|even if|despite|contrary to|in spite of|obwohl|bien que|aunque|虽然|尽管"
CONCEDED, CONCEDING = _table(_CONCEDED), _table(f"{_CONCEDED}|while|whereas|während")
_CONTRASTS = (
    "but|however|yet|nevertheless|nonetheless|whereas|while|although|though|even though|aber|jedoch|mais|pero|但|而"
)
CONTRASTS = _table(_CONTRASTS)
ANSWER = _table(r"""
(?:final |correct |right |short |direct |my )*answer(?: to (?:the|this|your) (?:query|
    question))?(?: here)?(?: is| was| would be| should be| must be| remains|\s*[:=])(?! (?:not|unclear|unknown|in|treated|
    taken|verified|checked|confirmed|viewed|regarded)\b)
(?:correct|right|true|final|actual) (?:option|choice|value|result|one|figure|number|year|date|amount)(?: is| would be|\s*[:=])
(?:final |short )?(?:result|conclusion|choice|verdict|final)(?: is| would be|\s*[:=])
la (?:bonne )?(?:respuesta|réponse|risposta)(?: correcta| correcte| final)? (?:es|est|è)
die (?:richtige )?antwort (?:ist|lautet)|(?:antwort|respuesta|réponse)\s*[:：]|答案\s*(?:是|为|:|：)|答え(?:は|:)|正解は
""")
CONCLUDING = _table("""
therefore|thus|hence|consequently|accordingly|so|in conclusion|to conclude|in summary|in short|overall|ultimately
i(?:'d| would|'ll| will)? (?:go|went) with|i(?:'d| would)? (?:choose|pick|trust|select|answer|say)|i(?:'m| am) going with
going with|(?:my (?:best )?(?:guess|estimate|choice|pick)) is|donc|daher|also|folglich|por (?:lo )?tanto|因此|所以|したがって
""")
# A clause that begins so takes something back.
REVISIONS = _table(r"""
actually|(?:very |i'm |i am )?sorry(?! (?:that|but|for|about|i|to))|apologies|my apologies|i apologi[sz]e|pardon(?: me)?
(?:scratch|strike|ignore|forget|disregard) (?:that|this|it|my|the (?:above|previous|last|first))|(?:no,? |oh,? |but )?wait
excuse me|i (?:mean(?! it)|meant)
(?:hold|hang) on|hmm*|oops|whoops|my (?:mistake|bad|error)|(?:self-)?correction|corrected|correcting|revision|revised
edit(?:ed)?(?=\W|$)|updated?(?=\W|$)|rather(?! than)|or (?:rather|no|actually|is it)
(?:on|after|upon|at) (?:a )?(?:(?:second|further|closer|careful|more careful) (?:thoughts?|look|inspection|reflection|
    consideration|examination|reading|glance)|reflection|re-?\w+ing)
(?:re-?|double-?)\w*(?:check|read|count|examin|consider)ing
(?:look|check|think|read|count)ing(?: \w+){0,4}? (?:again|closer|closely|carefully|more)
let me (?:re-?\w+|double\S*|check(?: \w+)? again|correct|fix|look again|verify|try again)|never ?mind|(?:oh|ah)(?=\W|$)
no(?=\W*$|, )|nope|not (?:quite|right)
i (?:mis\w+|mixed|confused|overlooked|stand corrected|retract|withdraw|take (?:that|it) back)
i(?:'ve|'d| have| would)?(?: \w+){0,3} (?:chang\w+ my|revise|withdraw|correct (?:my|that|it)|take (?:that|it) back|retract)
i (?:\w+ ){0,2}(?:said|wrote|thought|answered|assumed|guessed|looked at the wrong|was going to|wanted to|was wrong)
i (?:made|see|notice) (?:a|an|my) (?:\w+ )?(?:mistake|error|slip|typo)
(?:at first|initially|originally|first)(?=\W+(?:i|it|we)\b)
(?:my|the) (?:first|initial|original|previous|earlier|last) (?:\w+ )?(?:answer|guess|reading|response|thought|impression|
    value)
(?:that|this|it|which)(?:'s| is| was| seems| must be| cannot be| looks)(?: \w+){0,3}? (?:wrong|incorrect|mistake|error|
    mistaken|not right|misreading|slip|typo|from the (?:wrong|other))
should (?:be|read|have been|say)|please replace|(?:that|this|it) should (?:be|read|have been|say)|answer [2-9]|second answer
(?:user|assistant)\s*:|i should go by|not so fast|to correct
""")
# ... and so does a clause that holds one of these.
TAKEN_BACK = _table(r"""
misreading|misread|i take (?:that|it) back|(?:is|was) (?:an? )?(?:mistake|error|slip|typo) (?:of mine|on my part)|revised
corrected|counting again|changed my mind|on second thoughts?|do not trust|see below|or (?:actually|rather)|better(?=\s*:)
should (?:read|be)(?= \S+\)?\W*$)|i mean(?=\W)|sorry(?! (?:that|but|for|about|i|to))|->|→|=>|scratch that
""")
RESTORED = _table(r"""
(?:first|original|initial|earlier|previous) (?:\w+ )?(?:was|is|answer|reading|value|one)(?: \w+){0,2} (?:right|correct|stands)
after all
""")
EARLIER = _table(r"""
i (?:\w+ ){0,2}(?:said|wrote|thought|answered|assumed|guessed|misread|read)
(?:first|initial|original|previous|earlier) (?:\w+ )?(?:answer|guess|reading|response|thought|impression)|going to say
""")
NEGATIONS = _table(r"""
not(?! only| just| more| less| (?:a )?doubt)|never|neither|nor|no longer|rather than|instead of|in place of|other than
except(?: for)?|unlike|excluding|opposed to|as against|rul(?:e[sd]?|ing) out|reject(?:s|ed|ing)?|discard(?:s|ed|ing)?
disregard(?:s|ed|ing)?|ignor(?:e|es|ed|ing)|nicht|kein\w*|pas|non pas|no es|不是|而不是|と違い|without|misread as|mistaken for
confused with|wrong|nobody
""")
# Directly before a value, these make it the lesser side of a comparison, or an operand.
COMPARISONS = _table(r"""
than|compared (?:to|with)|versus|vs\.?|followed by|ahead of|behind|from|after|(?<!best )before|since|until|beats?|defeated|defeats
against|over|out of|(?:average|mean|sum|difference|midpoint|ratio|half|double|twice|third|quarter) (?:of|between)|exceeds?
exceeded|leads|tops|outnumbers?|unlike|adding|plus|minus|times
""")
REJECTIONS = _table(r"""
(?:is|are|was|were|seems?|appears?|looks?|must be)(?: to be)?(?: \w+){0,2}? (?:incorrect|wrong|false|inaccurate|mistaken|
    outdated|obsolete|out of date|erroneous|unreliable|irrelevant|misleading|impossible|not correct|not right|not supported|
    contradicted|an error|a mistake|a typo|a distractor)
(?:is|are|was|were) not (?:\w+ )?(?:indicated|shown|visible|present|mentioned|depicted|there|supported|in)
(?:does|do|did|can|could|must|may|should) not|contradicts?|conflicts? with|cannot be
""")
WRONGLY = _table("""
incorrect(?:ly)?|wrong(?:ly)?|mistaken(?:ly)?|erroneous(?:ly)?|false(?:ly)?|inaccurate(?:ly)?|misread(?:s|ing)?|outdated
not (?:correct|right|reliable|accurate)
""")
BOTH = _table("both|beide|les deux|ambos|as well as")
_CANNOT = r"""(?:cannot|could not|can not|unable to|not able to|not possible to|impossible to|(?:hard|difficult) to|
    rather not|not going to|not any way (?:\w+ )*to|do not think (?:\w+ )?can|no way (?:to|of)|will not|refuses? to|
    declines? to|(?:is|are) not (?:possible|able) to)"""
REFUSALS = _table(rf"""
{_CANNOT}(?: (?:be|been|\w+ly|give|make|provide|offer|an?|any|the|this|that|your|both|either|which|
    definitive))*? (?:answer\w*|determin\w*|conclu\w*|respon\w*|decid\w*|settl\w*|tell|resolv\w*|establish\w*|infer\w*|say|said|
    know\w*|pick\w*|choos\w*|chosen|select\w*|identif\w*|commit|judg\w*|reconcil\w*|guess\w*|confirm\w*|verif\w*|read|see|
    assist|help|share|disclose|find|provide|give|specif\w*|extract|access|view|make out|work|interpret|favour|assess|calculat\w*)
(?:no|not enough|insufficient|not sufficient) (?:\w+ )?(?:information|data|evidence|context|details?|answer|conclusion|basis)
insufficient|no way of (?:knowing|telling)|unanswerable|undeterminable|indeterminate|undetermined|inconclusive|unknown|n/a
neither(?: [\w.,]+){{1,8}} can be|idk|no idea|not confident|will not name|keine (?:\w+ )?antwort|no final answer
leave (?:it|this|the (?:answer|question|choice)) open|no basis|it is unclear(?! whether)
not answerable|not determinable|not applicable|i do not know|i have no idea|keine (?:angabe|information\w*)
(?:kann|lässt sich|können)(?: [\w,]+){{0,8}}? nicht|nicht (?:erkennbar|lesbar|angegeben|möglich|ersichtlich)|no (?:se )?puede
no es posible|no puedo|ne (?:peut|peux|permet)(?: \w+)* pas|impossible de|il n'est pas possible|non (?:disponible|indiqué)
无法|不能确定|不确定|看不清|不清楚|わかりません|判断できません|不明|読み取れません|確認できません|できません
(?:must|have to) decline|nothing (?:tells|settles|decides|helps)|not in a position|ne suis pas en mesure|nicht in der lage
""")
# Words that choose a source, whose value is then the answer's.
CHOOSING = _table("""
(?:go(?:ing)?|went) (?:with|by)|trust(?:ing)?|rely(?:ing)? on|follow(?:ing)?|prefer|prioriti[sz]e|side with
stick(?:ing)? (?:with|to)|choose|pick|believe|defer to|use
""")
# Doubt, which is no answer where nothing else is said, and no refusal beside one.
UNSURE = _table(
    "dunno|unsure|undecided|i am not sure|i'm not sure|not sure|not certain|uncertain|maybe|perhaps|hard to say"
)
_EACH = r"(?:both|each|the (?:two|pair)|two \w+|them both)"
AFFIRMS_BOTH = _table(rf"""
{_EACH}(?: \w+){{0,3}} (?:is|are|(?:could|can|may|might) be|seems?(?: to be)?|appears?)(?: \w+)? (?:correct|right|valid|true|
    acceptable|possible|given|plausible|okay|ok|counted|returned|reported|included|kept|my answers?|the answers?|part of)
{_EACH}(?: \w+){{0,3}} (?:apply|applies|holds?|counts?|stands?|belongs?|returned|included|go into|went into|as my answer)
(?:report|list|give|name|state|include|put|return|accept|keep|record|note|write|answer with|quote|mention)(?:s|d|ed|ing)?(?: you)?
    (?: down)? {_EACH}|answer (?:is|would be|includes|consists of|contains) both|so both
(?:toutes|tous|les)(?: les)? deux(?: \w+){{0,2}} (?:valables|correct\w*|justes?)|beide(?: \w+){{0,2}} (?:richtig|korrekt|gültig)
amb[oa]s(?: \w+){{0,2}} (?:correct\w*|válid\w*)|両方とも正|都(?:正确|对)
""")
# Verbs of a refusal that ends an answer, whatever it reported before.
DECIDING = _table(rf"""
{_CANNOT}(?: (?:be|been|\w+ly|give|make|provide|offer|an?|any|the|this|that|which|definitive))*? (?:answer\w*|determin\w*|
    conclu\w*|decid\w*|tell|resolv\w*|say|said|know\w*|pick\w*|choos\w*|chosen|select\w*|identif\w*|commit|reconcil\w*)
unclear which|no way of (?:knowing|telling)|do not know|unanswerable|无法|不能确定
""")
# What a source lacks: no refusal where the question asks whether it is there.
LACKS = _table(r"""
(?:do|does|did) not (?:\w+ly |itself )?(?:contain|provide|specify|include|mention|state|show|give|indicate|relate|say|answer|
    list|have (?:any|enough|the|access))
not (?:provided|specified|available|given|stated|visible|shown|legible|readable|mentioned|listed|known|enough|clear|certain|
    possible)
unclear|ambiguous|unreadable|illegible|too (?:blurr\w+|small|dark|faint)
(?:more|further|additional) (?:information|evidence|context|data) (?:is|would be|are)? ?(?:needed|required|necessary)
please (?:upload|share|clarify|attach)|没有(?:提供|足够|提到)
""")
CONFLICTS = _table(r"""
conflict\w*|contradict\w*|inconsisten\w*|discrepan\w*|mismatch\w*|disagree\w*|incompatible|irreconcilable|at odds
(?:do|does) not (?:\w+ )?(?:match|agree|align)|not consistent
(?:two|both|the) (?:sources?|values?|numbers|evidence|answers)(?: \w+){0,2} differ
differ(?:s|ent)? (?:from|values?|answers?|numbers?|figures?|information)|cannot both be|not the same|opposing
there (?:is|are) no (?:\w+ )+(?:in|on) the|no such|widerspr\w+|stimmen nicht überein|se contred\w+|contrad\w+|desacuerdo
no coinciden|ne concordent|矛盾|冲突|不一致|食い違|一致しません|异なる|異な
""")
UNDECIDED = _table("""
either|or|could be|might be|may be|possibly|perhaps|depending on|depends on|entweder|oder|ou bien|quizás|可能|或
""")
HEDGES = _table(r"""
exact(?:ly)?|precise(?:ly)?|(?:completely|entirely|absolutely|fully|totally|100\s?%) (?:sure|certain)|more (?:exact|precise)
""")
_CONDITIONS = "if|assuming|provided that|in case|unless|suppose|wenn|falls|si|如果"
CONDITIONS = _table(_CONDITIONS)
# After it, what stands before in the clause is taken back.
NO = _table(r"no(?=[,.!])")

LEADS = (
    rf"who|whose|which|{_CONTRASTS}|{_CONCEDED}|während|{_CONDITIONS}|and (?:the|it|in|on|for) |so(?! that| far)"
    "|therefore|thus|hence|because|since"
)
"""The words that begin a clause, as a regular expression."""
STOP_WORDS = word_set("""
the a an of in on at to for from by with and or is are was were be do does did has have had what which who whom when where why how
many much it its this that there as than not no yes
""")
SOURCES = {"image": IMAGE, "text": TEXT}


def source_named(word: str) -> str:
    """Return the source that a folded word names, "image" or "text"; "" if it names none."""
    return next((name for name, table in SOURCES.items() if table.fullmatch(word)), "")


def is_content(word: str) -> bool:
    """Return whether a folded word is neither a function word nor one that names or quotes a source."""
    return word not in STOP_WORDS and not source_named(word) and not REPORTING.fullmatch(word)
