"""The cue words of the match judge, one regular expression a line.

Entries match as whole words in folded text: lower case, straight quotes, "isn't" written "is not". ``<source>`` stands
for the names of the two sources; ``<cannot>``, ``<seems>``, ``<holds>`` and ``<handled>`` for the lists of that name.
To teach the judge a wording, add a line.
"""

from __future__ import annotations

import re

from judges.cmc_rules.lazy_pattern import lazy

# --- the two sources -----------------------------------------------------------------------------

IMAGE = """
images?|image's|charts?|chart's|figures?|graphs?|graph's|pictures?|diagrams?|plots?|maps?|photo(?:s|graphs?)?
visuals?|drawings?|illustrations?|cartoons?|screenshots?|x-?ray|dashboards?|flow ?charts?|screens?
receipts?|posters?|infographics?|floor ?plans?|scoreboards?|whiteboards?|billboards?|图表|图片
"""
TEXT = """
texts?|text's|textual|passages?|passage's|statements?|paragraphs?|descriptions?|snippets?|documents?
(?<=the )(?:report|note|e-?mail|memo|manual|summary)|articles?|written|captions?|文字|文本
"""
REPORTING = """
say|says|said|stat(?:e|es|ed|ing)|mention(?:s|ed|ing)?|claim(?:s|ed|ing)?|report(?:s|ed|ing)?|suggest(?:s|ed|ing)?
indicat(?:e|es|ed|ing)|giv(?:e|es|en|ing)|gave|show(?:s|ed|n|ing)?|list(?:s|ed|ing)?|depict(?:s|ed|ing)?|displays?
displayed|provid(?:e|es|ed|ing)|assert(?:s|ed)?|specif(?:y|ies|ied)|cit(?:e|es|ed)|quot(?:e|es|ed)|not(?:es|ed)
point(?:s|ed)? to|has|have|reads?|puts?|impl(?:y|ies|ied)|support(?:s|ed|ing)?|contains?|includes?|describ(?:e|es|ed)
names?|evidence|value|identif(?:y|ies|ied)|refer(?:s|red)? to|argues?|reveals?|records?|according|显示|说
"""
# What follows "according to the text" is the text's statement, not yet the answer ...
ATTRIBUTED = """
according to|as per|per|by|laut|selon|según
as (?:stated|shown|given|reported|mentioned|claimed) (?:in|by)
"""
# ... and so is an answer that the text is said to state.
STATED = r"(?:says?|said|stat(?:es?|ed)|claim(?:s|ed)?|report(?:s|ed)?|asserts?)(?: that)? (?:the|its) (?:\w+ )?answer"
# ... while what follows "based on the text, " is the answer.
BASIS = "based on|from|given|looking at|going by|judging by|using|considering|in|on|with|examining"
# These verbs affirm what they report, as "says" does not.
FACTIVE = "shows?|showed|clearly|actually|in fact|really|reveals?|confirms?|is|has|depicts?|displays?"
CONCEDING = ("while", "whereas", "although", "though", "even though", "despite", "contrary to")

# --- what makes a commitment ---------------------------------------------------------------------

EXPLICIT = r"""
answer(?: to (?:the|this|your) (?:query|question))?(?: here)? is(?! (?:not|unclear|unknown|in)\b)
answer(?: to (?:the|this|your) (?:query|question))?(?: here)?(?: was| would be| must be| remains|\s*[:=-])
answer(?: to (?:the|this|your) (?:query|question))?(?: here)? should be(?! <handled>)
(?:correct|right|true|final) (?:option|choice|value|result|one)(?: is| would be|\s*[:=])
(?:result|conclusion|choice|verdict)(?: is| would be|\s*[:=])
la (?:respuesta|réponse|risposta) (?:es|est|è)|die antwort (?:ist|lautet)|antwort\s*:|respuesta\s*:|réponse\s*:
答案(?:是|为|:)
"""
CONCLUDING = r"""
therefore|thus|hence|consequently|accordingly|as a result|so|in conclusion|conclusion|to conclude|conclude[sd]?
in summary|in short|to sum up|overall|this means|which means|this gives|we get|based on this|ultimately
taking (?:this|all this|that|everything) into account|my (?:best )?(?:guess|estimate|choice|pick)
(?:best|final) (?:guess|estimate|choice)|most (?:likely|probably)|(?:i am|i'm) going (?:with|for)
(?:i|we)(?:'d|'ll| would| will| shall| can| must| should| have to)? (?:say|choose|pick|answer|select|trust)
(?:i|we)(?:'d|'ll| would| will| shall| can| must| should| have to)? (?:keep|take|use)
(?:i|we)(?:'d|'ll| would| will| shall| can| must| should| have to)? (?:go|opt|settle|lean) (?:with|for|by|on|to)
going with|stand by|final(?:ly)?|settle[sd]? on|in fact
donc|daher|por (?:lo )?tanto|因此|所以
"""
TRAILING = r"""
(?:is|as|being|was|would be) (?:\w+ ){0,2}?(?:the )?(?:final |correct |right |best |true )*(?:answer|choice|option)
(?:is|being|was|would be) (?:thus |therefore |hence |indeed |clearly |still )?(?:correct|right|the winner)
after all
"""
# A source chosen by name commits to the value that source gives.
CHOOSING = """
go(?:ing)? (?:with|by)|trust|rely on|relying on|follow(?:ing)?|prefer|prioriti[sz]e|side with|stick (?:with|to)|take
favou?r|use|(?:precedence|priority|preference) to|choose|believe|keep to
"""
TRUSTED = r"""
(?:is|are|seems?|appears?|has|have|takes?)(?: \w+){0,3}? (?:correct|right|primary|authoritative|decisive|the better)
(?:is|are|seems?|appears?|has|have)(?: \w+){0,3}? (?:explicit|unambiguous|current|up to date|more recent|newer)
(?:is|are|seems?|appears?|has|have)(?: \w+){0,3}? more (?:reliable|precise|trustworthy|direct|authoritative|accurate)
(?:takes?|has|have)(?: \w+){0,2}? (?:precedence|priority)
(?:should|must|can|is to|has to|will) be (?:trusted|preferred|followed|used|considered|relied on|taken|believed)
"""
DISTRUSTED = r"""
<seems> (?:incorrect|wrong|false|inaccurate|mistaken)
<seems> (?:erroneous|unreliable|irrelevant|unrelated|in error|outdated|obsolete|out of date)
<seems> an? (?:error|mistake|typo)
(?:is|are)(?: \w+){0,2}? not (?:reliable|relevant|correct|related|right|accurate)
(?:cannot|should not|must not) be (?:trusted|relied on|believed|used)
"""

# --- what takes a statement back -----------------------------------------------------------------

# Each opens a clause. Later statements replace those made before it ...
REVISIONS = r"""
actually|(?:(?:i am|i'm|so) )?(?:very )?sorry(?: again)?(?=[^\w ]|$)|(?:my )?apologies|i apologi[sz]e
pardon(?: me)?|excuse me|or actually|i (?:mean(?! it)|meant)|make (?:that|it)|better(?=\s*[:,])
(?:no )?wait(?=[^\w ]|$| (?:no|i|that|actually|a (?:second|minute|moment))\b)|(?:hold|hang) on|hmm*(?=\W|$)|oops|whoops
(?:oh|ah)(?=[^\w ]| (?:no|wait|i|sorry|yes)\b)|my (?:mistake|bad|error|fault)|(?:self-)?correction(?= to|[^\w ]|$)
correct(?:ed|ing)(?: (?:answer|value|myself))?(?=\s*[:,-])|(?:edit(?:ed)?|update[d]?|revision)(?=\s*[:,-])
revised(?: \w+)?(?=\s*[:,-])|or rather|rather(?! (?:than|an?|few|many|low|high|small|large|little|more|less|\w+ly)\b)
on (?:second|further|closer|more careful) (?:thoughts?|look|inspection|reflection|consideration|examination|reading)
on reflection|(?:after|upon|on) re-?(?:check|read|consider|view|examin|evaluat|think|count|assess|verify|visit)ing
(?:re-?|double-?)(?:check|read|count)ing
(?:look|check|think|read|count)ing(?: \w+){0,3}? (?:again|closer|more closely|more carefully|once more)
let me (?:re-?|double-?)?(?:check|verify|look|think|read|count|phrase|consider|correct|fix|rephrase|revise|try)
(?:i|we)(?:'ve|'ll| have| will| need to| must| should| (?:want|would like) to|'d like to)? (?:changed?|revise) (?:my|that|it)
(?:i|we)(?:'ve|'ll| have| will| need to| must| should| (?:want|would like) to|'d like to)? correct (?:my\w*|that|it)
(?:(?:that|this|it|which) )?should (?:be(?! \w+ed\b)|have been|say|read|have said)|(?:i )?stand corrected
i (?:mis(?!take)\w+|mixed|confused|overlooked|looked at the wrong)
i (?:made|see|notice) (?:a|an|my) (?:\w+ )?(?:mistake|error|slip|typo)
"""
# ... and these withdraw the last statement even if no other follows ...
WITHDRAWALS = r"""
(?:scratch|strike|ignore|forget|disregard) (?:that|this|it|my|the (?:above|previous|last|first))|never ?mind
(?:i(?: \w+){0,3} |i'd like to |i'll )(?:take (?:that|this|it) back|withdraw|retract)(?: (?:that|this|it))?
"""
# ... as do references back to it as wrong, unless the question is a yes-or-no question.
POINTED = r"""
(?:that|this|it)(?:'s| \w+){0,2} (?:was|is|'s|seems|looks|must be|cannot be|does not (?:seem|look))(?: \w+){0,3}? <faulty>
(?:that|this|it)'s (?:\w+ )?<faulty>|(?:i was|both (?:are|were)) (?:wrong|mistaken)
"""
_FAULTY = (
    r"(?:wrong|incorrect|false|inaccurate|mistaken|outdated|out of date|obsolete|right(?<=not right)|right(?<=look right)"
    r"|right(?<=cannot be right)|right(?<=seem right)|correct(?<=not correct)|correct(?<=cannot be correct)"
    r"|an? (?:error|mistake|typo|misprint|slip|misreading)|from (?:an?|the) (?:earlier|older|previous|different|other)\b)"
)
# A value the answer gave or thought earlier no longer counts ...
EARLIER = r"""
i (?:\w+ ){0,2}?(?:said|wrote|thought|answered|stated|claimed|assumed|guessed)|i (?:was going|wanted|meant) to (?:say|answer)
i (?:\w+ )?(?:initially|first|originally|mistakenly|wrongly|erroneously) (?:\w+)
(?:initially|originally|at first(?: glance| sight)?|first),? (?:i|it|we)\b|at first(?: glance| sight)?
my (?:first|initial|original|previous|earlier) (?:\w+ )?(?:answer|guess|reading|response|thought|impression|value)(?: \w+)?
my answer of|it (?:first )?looked like|i (?:retract|withdraw|take back)
"""
EARLIER_AFTER = r"""
at first|initially|as i (?:\w+ )?(?:said|wrote|stated|claimed|thought)|is what i (?:\w+ )?(?:took|said|wrote|read|thought)
"""
# ... unless it is restored.
RESTORED = r"""
(?:my|the) (?:first|original|initial|earlier|previous) (?:\w+ )?(?:was|is)(?: \w+)? (?:right|correct)(?: after all)?
i was right (?:the first time|at first|before)|(?:my|the) (?:first|original|initial) (?:answer|value|reading) stands
"""

# --- what takes a mention back -------------------------------------------------------------------

NEGATIONS = r"""
nobody|no one|not(?! only| just| sorry| (?:more|less|later|earlier|fewer) than| (?:a )?doubt)|never|neither|nor|cannot
no(?! doubt| later| earlier| more| less| fewer| other| matter| question| mistake| exception| [0-9])
rather than|instead of|in place of|other than|except(?: for)?
in contrast to|unlike|excluding|(?:as )?opposed to|as against|(?:rule[sd]?|ruling) out|reject(?:s|ed|ing)?|exclude[sd]?
discard(?:s|ed|ing)?|disregard(?:s|ed|ing)?|ignor(?:e|es|ed|ing)|dismiss(?:es|ed|ing)?|nicht|kein\w*
"""
REJECTIONS = r"""
<seems> (?:not(?! only)|incorrect|wrong|false|inaccurate)
<seems> (?:outside|mistaken|unsupported|contradicted|outdated|obsolete|out of date)
<seems> (?:erroneous|irrelevant|unreliable|unrelated)
<seems> (?:misleading|impossible|too \w+)
<seems> an? (?:error|mistake|typo|misprint|misreading)
(?:does|do|did|can|could|must|may|should) ?not|contradicts?|conflicts? with|(?:has|have) no\w*|outside|appears nowhere
belongs to (?:another|a different)|(?:can|should|must) be (?:ruled out|excluded|ignored|disregarded)
"""
COMPARISONS = r"""
than|compared (?:to|with)|prefer(?:red|able) (?:to|over)|followed by|ahead of|unlike|beats|exceeds|(?:down|up) from
(?:before|after) \w+ing
"""
BEATEN = """
leads|beats|outnumbers?|exceeds|tops|outperforms?|surpasses|overtakes|outweighs?
(?:second|third|last)(?: place| rank)? comes?
"""
LESSER = "(?:is |are |was |comes |came |in )?(?:second|third|last|behind|trailing|next|runner-up)"
RISING = r"rose|ris\w+|increas\w+|gr[eo]w\w*|fell|fall\w*|drop\w*|declin\w+|decreas\w+|went|climb\w+|jump\w+|chang\w+"
OPERANDS = (
    r"(?:(?:average|mean|sum|difference|midpoint|ratio) (?:of|between)|(?:half|double|twice|a (?:third|quarter)) of"
    r"|(?:add|subtract|divid|multipl)\w*)"
)
UNDECIDED = r"""
either|whether|(?:could|might|may) be \S+(?: \S+){0,4} (?:could|might|may) be|(?:could|might|may|can)(?: \w+){0,4} or
"""

# --- what is no answer ---------------------------------------------------------------------------

_CANNOT = r"""
cannot|could not|am not able to|are not able to|is not able to|not able to|unable to|not possible to|impossible to
(?:hard|difficult) to|no way (?:to|of)|not feasible to|won't|will not|refuse to|decline to|hesitate to|would not
(?:(?:i|we)'d|would) (?:rather|prefer) not(?: to)?|prevents? me from|not in a position to
(?:does|do|did) not (?:allow|permit|let|enable)(?: \w+){0,3}?(?: to)?
"""
_HANDLED = r"(?:(?:treated|taken|regarded|viewed|read) with|verified|checked|confirmed)\b"
_SEEMS = r"(?:is|are|was|were|seems?|appears?|looks?|must be|would be)(?: to be)?(?: \w+){0,2}?"
_HOLDS = "(?:there (?:is|are)|there's|has|with|contains?|provides?|shows?|offers?|gives?)"
_ADVERBS = (
    r"(?: (?:be|been|\w+ly|possibly|give|make|provide|offer|reach|draw|an?|any|the|this|that|your|both|either|one|you))"
    r"{0,4}"
)
REFUSALS = r"""
<cannot> (?:answer\w*|determin\w*|defini\w*|conclu\w*|respon\w*|decid\w*|tell\w*|resolv\w*|establish\w*)(?! of)
<cannot> (?:deduc\w*|infer\w*|ascertain\w*|say|said|know\w*|pick\w*|choos\w*|chosen|select\w*|identif\w*)(?! of)
<cannot> (?:commit\w*|judg\w*|settl\w*|reconcil\w*|guess\w*|reliable|single|final|specif\w*|given)(?! of)
<cannot> (?:calculat\w*|comput\w*|compar\w*|assess\w*|derived|found|stated)(?! of)
cannot be (?:\w+ ){0,2}(?:read|confirmed|verified|trusted|extracted|seen|estimated)(?: \w+){0,4} (?:it|from|based)
cannot be (?:\w+ ){0,2}(?:read|confirmed|verified|extracted|seen|obtained)(?: \w+){0,4} (?:without|image|chart|further)
neither(?: \w+){0,6} (?:can|could) be \w+
neither(?: \w+){0,4} (?:<source>|source|sources|evidence)(?: \w+){0,3} (?:provid|giv|contain|show|sa[yi]|stat)\w*
neither(?: \w+){0,4} (?:<source>|source|sources|evidence)(?: \w+){0,3} (?:answer|allow|support|mention|specif)\w*
no (?:conclusion|decision|choice|determination) (?:can|could|may|is)|no answer|not answerable
no (?:(?:clear|definitive|definite|single|reliable|certain|final|conclusive) )+(?:answer|conclusion|value|choice)
without (?:a )?(?:definitive|clear|final) answer
answer (?:is|remains) (?:unknown|unclear|undetermined|uncertain|unavailable)
answer (?:is|remains) not (?:available|given|provided|clear|known)
(?:unclear|uncertain|unknown|not (?:clear|certain|known|sure)) (?:whether|if|which|what|how|who)
(?:trust|believe|accept|choose|pick|select|favou?r|prefer)s? neither
unanswerable|undeterminable|indeterminate|undetermined|inconclusive|undecided|unknown|n/a
do not know|not (?:determinable|known|applicable)|(?:remains?|is left) (?:open|unclear|unresolved)
keine angabe|(?:kann|können|lässt sich)(?: \w+){0,6} nicht|no se puede|ne peut|ne peux|impossible de|on ne
无法|不能确定|不确定
"""
DOUBTS = r"""
<cannot> (?:see|view|read|access|verif\w*|confirm\w*|find|locate|process|analy[sz]e|open|load|display|help|assist)
<cannot> (?:check\w*|trust\w*|provide|interpret|make out|reading|use|used|extract)
(?:not|no)(?: have| contain| provide| give| offer| include| see| find)*(?: any| \w+ly)* (?:enough|sufficient|adequate)
too (?:blurr(?:y|ed)|small|dark|faint|dim|low|grainy|unclear)(?: \w+){0,3}? to (?:be )?(?:read|seen?|make out|tell)
insufficient\w*|unclear|ambiguous|unavailable|unreadable|illegible|sorry|none of the (?:sources|evidence)
(?:does|do|did) not (?:\w+ly |itself )?(?:contain|provide|specify|include|mention|state|show|give|indicate|answer|say)
(?:does|do|did) not (?:\w+ly |itself )?(?:list|depict|have|display|support|address|tell)
<holds> no (?:\w+ ){0,2}(?:information|data|evidence)
<holds> no (?:\w+ ){0,2}(?:answer|value|mention)
<holds> no (?:\w+ ){0,2}(?:way|basis|details?|context)
there (?:is|are) no (?:\w+ ){0,2}(?:image|chart|text|figure)
(?:<source>) (?:\w+ )?(?:has|contains|shows|includes|gives|lists) no
no (?:\w+ )?(?:information|data|evidence) (?:\w+ )?(?:available|provided|given|found|shown|about|on|for|regarding)
(?:is|are|was|were|been) not (?:\w+ )?(?:available|provided|given|specified|mentioned|stated|shown|visible|clear)
(?:is|are|was|were|been) not (?:\w+ )?(?:legible|readable|included|attached|enough|sufficient|supplied|present)
not (?:provided|specified|available|given|stated|visible|shown)
(?:<source>|evidence)(?: evidence)? is (?:missing|absent|blank|empty|unreadable|illegible|too \w+)
please (?:provide|upload|attach|share|supply|check|verify|clarify|send|specify)
could you (?:please )?(?:\w+ )?(?:describe|provide|share|upload|clarify)
(?:more|further|additional) (?:information|evidence|context|data|details?)(?: \w+){0,4} (?:needed|required|necessary)
(?:need|needs|require|requires) (?:more|further|additional|to (?:see|know))
(?:needs?|has|have|ought|should)(?: to)? be (?:checked|verified|clarified|resolved)
recommend (?:\w+ )?(?:checking|verifying|consulting)
"""
# Next to a refusal, these make it a hedge of an answer given elsewhere.
HEDGES = r"""
exact(?:ly)?|precise(?:ly)?|(?:completely|entirely|absolutely|fully|totally|100\s?%) (?:sure|certain)|confidence
"""
CONFLICTS = r"""
conflict\w*|contradict\w*|inconsisten\w*|discrepan\w*|mismatch\w*|disagree\w*|incompatible|irreconcilable|at odds
(?:not|nor)(?: \w+){0,2} (?:match\w*|agree\w*|align\w*|correspond\w*|consistent|fit|coincide|in line|compatible)
(?:not|nor) the same|mutually exclusive|cannot both(?: \w+)? (?:be|hold)|not both be
(?:two|both|sources?|values?|evidence|numbers|answers|they|<source>)(?: \w+){0,3} (?:differ|diverge)s?
(?:two )?different (?:values?|answers?|numbers?|years?|figures?|information|things|names?|results?|claims?|percentages?)
opposing|opposite (?:values|answers|claims)
outside(?: of)? (?:the|its|this|that)|out of (?:the )?range|beyond the (?:range|scope|chart)
(?:depend(?:s|ing) on|unclear|uncertain|not (?:clear|know|say|tell)) (?:which|what|whether|who)
not (?:\w+ )?(?:appear|exist|shown|present|listed|included|visible|in|on|part|found|covered|among)(?: \w+){0,4} <source>
not (?:\w+ )?(?:appear|shown|present|listed|included|in|part|found|covered|among)(?: \w+){0,3} (?:range|axis|options)
not(?: \w+)? (?:supported|confirmed|backed|corroborated|reflected) (?:by|in)
there is no(?: [^\s,.]+){1,6} (?:in|on|among) (?:the|this) (?:<source>|options)
widersprechen|widerspruch|se contredisent|contradicen|矛盾|冲突|不一致
"""
AGREEMENTS = r"""
both(?: \w+){0,6} (?:agree|valid|correct|true|support|confirm|right|consistent|point|accurate|plausible|same)\w*
also (?:support|confirm)\w*|(?:support|confirm)s (?:this|that|it|the (?:<source>))|(?:supported|confirmed) by
(?<!not )(?<!in)consistent with|in (?:agreement|accordance|line) with|in agreement|agrees? with|agree that|as well as
match(?:es|ing) (?:the|this)|corroborat\w*|same (?:value|answer|result)
"""

# --- values --------------------------------------------------------------------------------------

# Without one of these or a value, talk of conflict or agreement concerns the subject, not the sources.
COMPARED = "evidence|sources?|information|data|both|they|them|these|this|it|each|two|values?|contents?"
APPROXIMATE = """
about|around|approximately|approx|roughly|nearly|almost|close to|some|circa|ca|just (?:over|under)|estimated|rounded
(?:slightly|a little|little) (?:over|under|above|below|more|less)(?: than)?|or so|nearest|more or less|over
ungefähr|etwa|environ|约|大约
"""
HARDLY = "not (?:always|really|at all|entirely|necessarily|quite)"
YES = "yes|yeah|yep|true|correct|indeed|affirmative|ja|oui|sí"
NO = HARDLY + "|no|nope|false|incorrect|not true|not the case|not correct|untrue|negative|nein|non"
# Changes in two words, each read as the word before its colon.
CHANGES = """
increases: (?:gets?|got|becomes?|became|grows?|grew) (?:larger|bigger|greater|higher)|(?:goes|go|went) up
decreases: (?:gets?|got|becomes?|became|grows?|grew) (?:smaller|lower|less)|(?:goes|go|went) down
"""
EQUALITY = "equal(?:ly)?|the same|identical|tied|equals"
# A number after one of these is a name, not a value.
LABELLING = """
step|fig|figure|group|week|grade|level|line|option|trial|phase|row|column|table|no|question|page|type|stage|part|section
chapter|room|route|item|bar|number|class|model|test|age|ages|aged|top|day|month|quarter
"""


_PLACEHOLDER = re.compile(r"<[a-z]+>")


def either(table: str) -> str:
    """Return the entries of a table as one alternation, with the placeholders filled in."""
    lines = "|".join(line for line in table.split("\n") if line)
    lines = lines.replace("<faulty>", _FAULTY)
    if _PLACEHOLDER.search(lines):
        sources = f"{either(IMAGE)}|{either(TEXT)}"
        lines = lines.replace("<cannot>", f"(?:{either(_CANNOT)}){_ADVERBS}").replace("(?:<source>", f"(?:{sources}")
        lines = lines.replace("<seems>", _SEEMS).replace("<holds>", _HOLDS).replace("<handled>", _HANDLED)
        lines = lines.replace("<source>", f"(?:{sources})")
    return lines


def compiled(table: str) -> re.Pattern[str]:
    """Return one pattern that finds any entry as whole words; Chinese has no spaces, so its entries match anywhere."""
    return lazy(rf"(?<![^\W_\u2e80-\u9fff])(?:{either(table)})(?:(?<=[\u2e80-\u9fff])|(?![^\W_\u2e80-\u9fff]))")
