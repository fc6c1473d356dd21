"""The pool of workers: Celery carries tickets that say there is work, and the database says which."""
