"""What the compiled loops of filters/ and dedup/ share: the compiler, Arrow buffers, Han tables.

Everything may import this folder; it imports nothing of the project.
"""
