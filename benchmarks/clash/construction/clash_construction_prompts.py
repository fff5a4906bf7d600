"""The construction prompts: Appendix B.1 and B.2 as printed; the spatial prompt and the input format are ours.

The paper's words are kept to the character; where its lines end cannot be seen in print, so lines end here where its lists
do. It does not say how a prompt is given its input either: each input is a line of its own after the prompt, a name and a
JSON string, so that nothing in a caption can end it or begin another line.
"""

from __future__ import annotations

import json

CONFLICTING_CAPTION = """\
You are an expert image caption editor and question generator. Your task is to modify existing image captions and then \
create subtle questions based on your modifications. Given an original image caption, you need to perform the following \
four steps:
Step 1: Create a conflicting caption. Take the provided original caption. Identify one key element (either a specific \
object or an attribute of an object, like its color, number, shape, material, or texture). Change only this one element \
to create a subtle, but noticeable, conflict or discrepancy. The rest of the caption must remain identical to the \
original. Ensure the conflict is a plausible, though incorrect, alternative (e.g., “red car” to “blue car,” not “red car” \
to “flying car”). Do not change words that have binary states (e.g., man–woman, open–close, dark-light, indoor–outdoor).
When changing an attribute: Only change objective attributes such as color, number, shape, material, or texture. Do not \
change subjective or ambiguous attributes such as beautiful, small, large, big, medium, moderate, modern, young, old, \
fast, slow, elegant, scary, tall, short, etc.
Step 2: Track the changed words. Identify the exact word(s) that were changed from the original caption. Record both the \
original word(s) and the replacement word(s).
Step 3: Identify the type of change. Determine whether the change made in Step 1 was to an “object” (e.g., “cat” changed \
to “dog”) or an “attribute” (e.g., “white” cat changed to “black” cat).
Step 4: Generate a subtle question. Based on your newly created conflicting caption, formulate a question. This question \
must subtly hint at the conflicting element without directly stating that something is wrong or different. The question \
should encourage the user to focus on the changed element.
Here is an example. Provide your responses in the exact JSON format shown:
User: "A fluffy white cat sitting on a red couch."
Model:
{
  "conflicting_caption": "A fluffy black cat sitting on a red couch.",
  "question": "What color is the cat sitting on a couch?",
  "change_type": "attribute",
  "changed_words": {
    "original": "white",
    "conflicting": "black"
  }
}"""
"""Steps 1 to 3 of section 3.2 in one call (Appendix B.1, first prompt)."""

ANSWERS = """\
Your task is to write three answer choices for a multiple-choice question that highlights a subtle conflict between two \
captions.

Instructions

Generate the following three answer options:
1. image_only_answer: The answer that fits the original caption.
2. text_only_answer: The answer that matches the conflicting caption.
3. irrelevant_but_plausible: A plausible distractor that doesn’t appear in either the original or the conflicting \
caption, but is contextually reasonable.
Make sure the distractor is NOT ambiguous or vague (avoid words such as several, afternoon, medium, moderate, thing, stuff).
Ensure that all answers are: Concise (preferably 1–3 words), Mutually exclusive, Plausible in context, but not synonymous \
to each other.
Only output a JSON with the following fields:
{
  "image_only": "...",
  "text_only": "...",
  "irrelevant_but_plausible": "..."
}"""
"""The answers (Appendix B.1, second prompt)."""

ATTRIBUTE_CHECK = """\
You are given two words: original and conflicting. Perform the following two steps:
1. Decide if each word is an attribute (a descriptive property, e.g., red, tall, beautiful) or not an attribute (an \
object, e.g., car, tree).
2. If both are attributes, classify them as:
Objective = measurable, factual, observable (e.g., red, square, wooden, three).
Subjective = opinion-based or interpretive (e.g., beautiful, small, moderate, large, big, medium, modern, young, old, \
fast, slow, elegant, scary, tall, short, stylish, fancy, cheap, impressive).
Only output a JSON with the following fields:
{
  "change_is_attribute": "Yes/No",
  "change_is_objective": "Yes/No"
}"""

OBJECT_CHECK = """\
You are given two words: original and conflicting. Your task is to check the quality of the conflicting word in relation \
to the original:
1. Object check: Determine whether each word is an object (a tangible or identifiable thing/entity, e.g., car, apple, \
chair). Are the two words objects?
2. Synonymy check: Is the conflicting object a synonym or near-synonym of the original?
3. Ambiguity check: Is the conflicting object ambiguous or vague (e.g., “thing”, “object”, “stuff”)?
4. Contextual relevance: Does the conflicting object make sense in the same scene as the original?
Only output a JSON with the following fields:
{
  "change_is_object": "Yes/No",
  "change_is_synonym": "Yes/No",
  "change_is_ambiguous": "Yes/No",
  "change_is_relevant": "Yes/No"
}"""

ANSWERS_CHECK = """\
You are given three words/phrases. For each word/phrase, check the following:
1. Synonymy check: Is one of the words/phrases a synonym or near-synonym of the other two?
2. Ambiguity check: Is any of the words/phrases ambiguous or vague (e.g., “several”, “afternoon”, “medium”, “thing”)?
3. Contextual relevance: Are all words/phrases contextually relevant and objective (not subjective or off-topic)?
4. Visual check: Can each word/phrase be directly observed in an image?
Examples of visual words include:
Attributes of objects (number, color, shape, size, material)
Object categories (car, chair, dog)
Spatial relations (on top of, next to)
Scenes (beach, kitchen)
Examples of non-visual words include:
Temporal concepts (afternoon, tomorrow)
Abstract states (freedom, happiness)
Non-observable attributes (brand, taste, temperature)
Subjective labels (beautiful, boring, large)
{
  "ans_is_synonym": "Yes/No",
  "ans_is_ambiguous": "Yes/No",
  "ans_is_relevant": "Yes/No",
  "ans_is_visible": "Yes/No"
}"""

QUESTIONS_CHECK = """\
You are given a question, a set of changed words, and three possible answers. Your task is to check the question based on \
three criteria:
1. Ambiguity check: Is the question clear, specific, and unambiguous?
2. Focus check: Does the question explicitly ask about the changed words?
Examples:
Question: “What is the color of something?” Changed words: green, blue → Output: Yes
Question: “How many items are there?” Changed words: three, four → Output: Yes
3. Answerability: Are all three candidate answers semantically and contextually compatible with the question?
Examples:
Question: “What is the color?” Answers: green, blue, red → Output: Yes
Question: “What is the gender?” Answers: man, woman, child → Output: No
Only output a JSON object with the following fields:
{
  "question_is_clear": "Yes/No",
  "question_is_focused": "Yes/No",
  "question_is_answerable": "Yes/No"
}"""

SPATIAL = """\
You are given two captions of an image that differ in one spatial relation. Write a multiple-choice question about that \
relation, and a distractor.
1. question: Ask where something is in relation to something else, so that the original caption gives one answer and the \
conflicting caption the opposite one. Name the things, but neither of the two relations, and do not hint that anything is wrong.
2. irrelevant_but_plausible: Another spatial relation that would also answer the question, that is in neither caption and \
does not mean the same as either relation (1-4 words).
Only output a JSON with the following fields:
{
  "question": "...",
  "irrelevant_but_plausible": "..."
}"""
"""The question and the distractor of a spatial sample (Appendix C.1 has them generated, and prints no prompt): our words."""


def add_inputs(prompt: str, **inputs: str) -> str:
    """Return a prompt with its inputs below it, one line ``Original caption: "..."`` each."""
    lines = [f"{name.replace('_', ' ').capitalize()}: {_quoted(value)}" for name, value in inputs.items()]
    return "\n".join([prompt, "", *lines])


def add_caption(prompt: str, caption: str) -> str:
    """Return a prompt with the caption as the next turn of the example, ``User: "..."`` and an open ``Model:``."""
    return f"{prompt}\n\nUser: {_quoted(caption)}\nModel:"


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
