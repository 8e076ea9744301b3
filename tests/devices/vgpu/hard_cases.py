"""Random pods that are hard to place: up to eight containers that nearly fill up to sixteen cards."""

import random

from webhook.devices.vgpu.fleet import Card
from webhook.devices.vgpu.slices import Need

SIZES = (15360, 16384, 24564, 32768, 40960, 46068, 81920)  # MiB of real cards
CORES = (0, 10, 25, 30, 35, 40, 50, 60)


def hard_case(seed):
    """The cards of a node and the needs of a pod; the same for the same seed."""
    chance = random.Random(seed)
    cards = _cards(chance)
    return cards, _needs(chance, cards)


def _cards(chance):
    count = chance.choice([2, 4, 8, 8, 16, 16])
    real = chance.random() < 0.6
    kinds = [
        Card(
            f"NVIDIA-{kind}", chance.choice(SIZES) if real else chance.randint(10, 60), chance.choice([2, 3, 4, 10, 10])
        )
        for kind in range(min(chance.choice([1, 1, 2, 3, 4, count]), count))
    ]
    return [chance.choice(kinds) for _ in range(count)]


def _needs(chance, cards):
    largest = max(card.memory for card in cards)
    scarce = chance.choice(["memory", "cores", "both", "whole cards"])
    most = chance.choice([1, 2, 4, len(cards)])
    numbers = [chance.randint(1, min(most, len(cards))) for _ in range(chance.randint(3, 8))]
    shares = [chance.uniform(0.05, 1) for _ in numbers]
    scale = 0.02 * largest
    if scarce != "cores":
        scale = sum(card.memory for card in cards) * chance.uniform(0.8, 1.05)
        scale /= sum(share * number for share, number in zip(shares, numbers, strict=True))
    needs = []
    for number, share in zip(numbers, shares, strict=True):
        memory = None if chance.random() < 0.15 else min(max(int(share * scale), 1), largest)
        cores = 0 if scarce == "memory" else chance.choice([*CORES, 100] if scarce == "whole cards" else CORES)
        needs.append(Need(number, memory, cores))
    return needs
