"""The pool embedded in a server: processes of its own claim work from the database, without a broker."""
