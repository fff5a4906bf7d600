"""Replies that choose an option by its letter, with the letter that is meant; None where no single one is.

Written before the readers of letters were changed, and the same for every benchmark with options.
"""

from __future__ import annotations

CHOSEN: tuple[tuple[str, str], ...] = (
    # the letter alone, dressed
    ("A", "A"),
    ("b", "B"),
    ("(C)", "C"),
    ("**D**", "D"),
    ("B.", "B"),
    ("[A]", "A"),
    ('"C"', "C"),
    # the letter alone on the first or last line, then or before reasons
    ("A\n\nThe image shows it.", "A"),
    ("B\n\nThe image shows it.", "B"),
    ("A.\nA man is holding the sign in the picture.", "A"),
    ("(D)\n\nExplanation: the second text agrees with it.", "D"),
    ("The image shows a tower in a city.\n\nA", "A"),
    ("Both texts were considered.\n\n**C**", "C"),
    # before the option's text
    ("B. 1972", "B"),
    ("C) athletic footwear", "C"),
    ("(A) Taylor Swift", "A"),
    ("D: luxury watches", "D"),
    # announced
    ("The answer is C.", "C"),
    ("The correct answer is A.", "A"),
    ("Answer: B", "B"),
    ("Final answer: D", "D"),
    ("My answer is (B).", "B"),
    ("The correct option is C.", "C"),
    ("The best choice is **A**.", "A"),
    ("I would choose option D.", "D"),
    ("Option B is correct.", "B"),
    ("Option A is the correct answer.", "A"),
    ("Option C is the right choice, because the image shows it.", "C"),
    ("Choice D is best.", "D"),
    ("I choose B because it fits.", "B"),
    ("So the answer would be option A.", "A"),
    ("Therefore, the right answer is B: 1972.", "B"),
    # in a structure
    ('{"answer": "B"}', "B"),
    ('{"answer":"A"}', "A"),
    ('```json\n{"answer": "C"}\n```', "C"),
    ('{"choice": "D", "reason": "it is blue"}', "D"),
    ('{"reasoning": "A man and a dog", "answer": "B"}', "B"),
    ("\\boxed{C}", "C"),
    ("$\\boxed{\\text{D}}$", "D"),
    ("<answer>A</answer>", "A"),
    # with the others excluded
    ("The answer is B, not A.", "B"),
    ("Option C is correct. Option A is wrong.", "C"),
    ("It is not A. The answer is D.", "D"),
    ("A is incorrect, so the answer is B.", "B"),
    # corrected
    ("The answer is A. Wait, the answer is C.", "C"),
)

NOT_CHOSEN: tuple[str, ...] = (
    "A or B",
    "Either (A) or (C).",
    "(A) and (B) both fit.",
    "A. Red\nB. Green\nC. Blue\nD. White",
    "I cannot tell which option is right.",
    "According to the image, it is red.",
    "A man is standing there.",
    "Not A.",
    '{"answer": ["A", "B"]}',
    '{"answer": "A or B"}',
    "Vitamin C is in it.",
    "",
)
