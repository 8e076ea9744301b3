"""The pages: one file a page. Each shows what operations of the API answer, and decides nothing.

What only one page needs begins with its name: `playground_folds`.
"""
