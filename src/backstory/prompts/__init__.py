"""What we say to models: the words of each prompt in a file of its own, and a builder that fills them in.

Nothing else builds prompts. A change of the words is a change of the prompt's version.
"""
