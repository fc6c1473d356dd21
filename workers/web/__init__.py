"""The web page's files: plain modules, one style sheet, no build. ``workers.api.web_routes`` serves them."""
