"""The steps of a study, as the page shows them: one function for each request to the server.

A function takes a project and the values of the request, and returns what JSON can hold or a
response; none needs a network.
"""
