"""Logits of several continuations of one prompt in PyTorch: the prompt and its images are computed once."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from mlx_backends.core.batch_invariance import MAX_NOISE_SHARE
from mlx_backends.pytorch.torch_preprocess import TorchInputs, collate

_HIGHEST = 10


def continuation_logits(model: Any, inputs: TorchInputs, sequences: Sequence[Sequence[int]], pad: int) -> list[Any]:
    """Return the logits, of the shape (tokens, vocabulary), that each token of each sequence follows the prompt with.

    Every sequence is read in one pass, into a copy of the prompt's cache.
    """
    import numpy as np
    import torch
    from transformers import GenerationConfig

    device, dtype = model.device, model.dtype
    tensors = {
        name: value.to(device, dtype) if value.is_floating_point() else value.to(device)
        for name, value in collate([inputs], pad).items()
    }
    with torch.inference_mode():
        # transformers' own start of an answer, which computes the positions and sets what decoding reads from the model.
        read = model.generate(
            **tensors,
            generation_config=GenerationConfig(
                max_new_tokens=1,
                do_sample=False,
                pad_token_id=pad,
                return_dict_in_generate=True,
                output_logits=True,
                use_cache=True,
            ),
        )
        first = read.logits[0][0].float().cpu().numpy()
        length = tensors["input_ids"].shape[1]
        results = []
        for sequence in sequences:
            rows = [first]
            if len(sequence) > 1:
                output = model(
                    input_ids=torch.tensor([list(sequence[:-1])], device=device),
                    attention_mask=torch.ones((1, length + len(sequence) - 1), dtype=torch.long, device=device),
                    past_key_values=copy.deepcopy(read.past_key_values),
                    use_cache=True,
                )
                rows += list(output.logits[0].float().cpu().numpy())
            results.append(np.stack(rows))
    return results


def agree(logits: Any, reference: Any) -> bool:
    """Return whether the highest logits of every position are those of ``reference``, but for rounding."""
    import numpy as np

    if logits.shape != reference.shape:
        return False
    highest = np.argsort(-reference, axis=-1)[:, :_HIGHEST]
    shifts = np.take_along_axis(logits - reference, highest, axis=-1)
    return bool(np.abs(shifts).max(initial=0) <= MAX_NOISE_SHARE * reference.std(axis=-1).mean())
