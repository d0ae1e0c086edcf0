"""The shapes of unseen.py, by what they stand for."""
