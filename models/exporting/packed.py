"""Samples that hold several documents (prepare_data.py text --pack), as a model sees them."""

import torch

from . import Refusal

IGNORED = -100  # a label that counts for nothing


def packed_inputs(config, ids) -> dict:
    """Two documents a sample, and padding (segment 0) at the end."""
    if config.model_type == "bert":
        raise Refusal("--packed is for models that guess the next token; a BERT's samples are masked ones")
    length = ids.shape[1]
    second, end = max(1, length // 3), length - length // 4
    places = torch.arange(length).expand(ids.shape).clone()
    segments = 1 + (places >= second).long()
    positions = torch.where(places >= second, places - second, places)
    labels = ids.clone()
    labels[:, [0, second]] = IGNORED
    for value, padding in ((segments, 0), (positions, 0), (labels, IGNORED)):
        value[:, end:] = padding
    return {"input_ids": ids, "position_ids": positions, "segment_ids": segments, "labels": labels}


def within_documents(segment_ids, dtype):
    """What attention adds to its scores: a token sees its own document up to itself."""
    places = torch.arange(segment_ids.shape[1], device=segment_ids.device)
    seen = (segment_ids[:, None, :, None] == segment_ids[:, None, None, :]) & (places[:, None] >= places)
    return torch.where(seen, 0.0, torch.finfo(dtype).min).to(dtype)
