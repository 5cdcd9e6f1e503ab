"""Transcripts and request bodies as people have them, to and from hango's words.

One file a format, pure functions. `source.py` is the file they read, `reading.py` how strictly; `detect.py` tells the
formats apart; `readers.py` is the table of them. Every reader makes the records of `transcript.py`: an agent, and
sessions whose messages are made one at a time. What is odd is kept, and flagged by `oddities.py`; what cannot be is
refused with its place.
"""
