"""ResNet (He et al. 2015, version 1.5: the stride is the 3 x 3 convolution's), its cross-entropy inside.

Written by hand, since torchvision's binaries do not load beside the CPU build of torch; modules have torchvision's names, so
that its weights fit.
"""

import torch
from torch import nn


class Bottleneck(nn.Module):
    """1 x 1, 3 x 3, 1 x 1, and around them the input, projected where the shape changes."""

    expansion = 4

    def __init__(self, channels: int, width: int, stride: int):
        super().__init__()
        wide = width * self.expansion
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, wide, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(wide)
        self.relu = nn.ReLU()
        self.downsample = None
        if stride != 1 or channels != wide:
            self.downsample = nn.Sequential(nn.Conv2d(channels, wide, 1, stride, bias=False), nn.BatchNorm2d(wide))

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    """pixel_values [batch, 3, size, size], labels [batch] -> the mean cross-entropy."""

    def __init__(self, blocks, width: int = 64, num_labels: int = 1000, image_size: int = 224):
        super().__init__()
        self.image_size, self.num_labels = image_size, num_labels
        self.conv1 = nn.Conv2d(3, width, 7, 2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(3, 2, padding=1)
        channels = width
        for stage, count in enumerate(blocks):
            layers = []
            for i in range(count):
                layers.append(Bottleneck(channels, width << stage, 2 if stage > 0 and i == 0 else 1))
                channels = (width << stage) * Bottleneck.expansion
            setattr(self, f"layer{stage + 1}", nn.Sequential(*layers))
        self.stages = len(blocks)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(channels, num_labels)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def logits(self, pixel_values):
        """[batch, num_labels]."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(pixel_values))))
        for stage in range(self.stages):
            x = getattr(self, f"layer{stage + 1}")(x)
        return self.fc(self.avgpool(x).flatten(1))

    def forward(self, pixel_values, labels):
        return torch.nn.functional.cross_entropy(self.logits(pixel_values), labels)
