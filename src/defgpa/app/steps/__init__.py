"""The steps of a study, as the page shows them: what each asks of the server, a function a request.

A function takes a project and the values of the request, and returns what JSON can hold or a
response; none needs a network.
"""
