"""The pool as a whole: real brokers, a real database, and the commands as an operator and a submitter start them."""
