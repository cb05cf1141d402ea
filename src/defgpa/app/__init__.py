"""A local web application: look at specimens, correct them, align, explore, test, take away.

The server (`defgpa.app.server`) is a thin layer over the public functions of the package; a project
is a folder. It needs starlette and uvicorn: ``pip install "defgpa[app]"``.
"""
