"""Steps that are handed out and taken back: the ledger, prompts as files, outlines shared."""
