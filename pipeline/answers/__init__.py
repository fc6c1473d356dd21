"""The VLM's answers: what is asked of it, how a reply is read, and whether it is believed."""
