"""Modules for `models/export.py decoder:NAME`: decoders whose embedding and head are two matrices of one size, and what has statistics or cells."""

import torch
from torch import nn


class Block(nn.Module):
    """Attention and a perceptron beside each other."""

    def __init__(self, width, grown):
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, grown), nn.Linear(grown, width)

    def forward(self, x):
        q, k, v = (part.unsqueeze(1) for part in self.qkv(self.norm_1(x)).chunk(3, -1))
        a = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).squeeze(1)
        return x + self.out(a) + self.down(nn.functional.gelu(self.up(self.norm_2(x))))


class Normed(nn.Module):
    """A perceptron behind running statistics."""

    def __init__(self, width, grown):
        super().__init__()
        self.norm, self.up, self.down = nn.BatchNorm1d(width), nn.Linear(width, grown), nn.Linear(grown, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x.transpose(1, 2)).transpose(1, 2))))


class Cells(nn.Module):
    def __init__(self, width, _):
        super().__init__()
        self.cells = nn.LSTM(width, width, batch_first=True)

    def forward(self, x):
        return x + self.cells(x)[0]


class Decoder(nn.Module):
    def __init__(self, vocabulary, width, blocks):
        super().__init__()
        self.embed, self.blocks = nn.Embedding(vocabulary, width), nn.ModuleList(blocks)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, input_ids, labels):
        x = self.embed(input_ids)
        for block in self.blocks:
            x = block(x)
        x = self.head(self.norm(x))
        return nn.functional.cross_entropy(x[:, :-1].flatten(0, 1), labels[:, 1:].flatten())


def made(vocabulary, width, kind, blocks, tokens=8):
    module = Decoder(vocabulary, width, [kind(width, 2 * width) for _ in range(blocks)])
    return module, {"input_ids": torch.randint(0, vocabulary, (2, tokens)), "labels": torch.randint(0, vocabulary, (2, tokens))}


def small():
    return made(64, 16, Block, 2, 16)


def wide():
    return made(128, 32, Block, 3)


def normed():
    return made(32, 12, Normed, 3)


def cells():
    return made(32, 8, Cells, 2, 4)
