"""Whole NVIDIA cards, or memory of one card, under Volcano's older GPU sharing."""
