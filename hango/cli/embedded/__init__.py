"""Private services in a folder, reached by unix sockets only: what `hango up` and the tests run on.

Whoever starts one holds a lock on it for as long as it runs. A second starter shares it or waits; what a
killed one left running is ended before the next start.
"""
