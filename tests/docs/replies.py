"""Scripted replies of remote models, for the commands of the documentation."""

from __future__ import annotations

import json

from tests.support import contra4_writer, crosscheck_writer, scripted_writer


def reply(prompt: str, times: int) -> str:
    """Return a judge's label, a construction's text or check, or a refusal to answer."""
    if '"label"' in prompt:
        return '{"label": "IMAGE"}'
    if "Possible answers: " in prompt:
        return json.dumps(crosscheck_writer.honest(prompt))
    if 'Scene A. "' in prompt:
        return contra4_writer.writes(prompt)
    if "Reply yes or no." in prompt:
        return "yes"
    if prompt.startswith(CONSTRUCTIONS) or any(phrase in prompt for phrase in CONSTRUCTIONS):
        try:
            return scripted_writer.reply(prompt, temperature=0.7 if times > 1 else 0.0)[0]
        except scripted_writer.Refused as error:
            return str(error)
    return "NONE"


CONSTRUCTIONS = (
    "counterfactual knowledge generator",
    "expert image caption editor",
    *scripted_writer.RULES,
)
"""Phrases that identify the prompts of CLASH's and MMKC-Bench's constructions."""
