"""The compiled inner loops, a file per encoding. Plain functions of arrays; nothing here knows what
a mechanism is.
"""
