"""The slots of the chain. Their order is read in `stack.py`; they do not know each other."""
