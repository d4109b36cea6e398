"""`python -m kclient COMMAND`: what people ask of a cluster from a terminal.

Data go to standard output and talk to standard error. What a failure means is in the exit code, the same for every
command (`exits.py`), and its text says what to do next. Nothing is coloured, and nothing moves unless a terminal looks.
"""
