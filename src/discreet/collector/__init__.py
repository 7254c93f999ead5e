"""The collector (extra `serve`): an untrusted server that counts perturbed reports, its stores, its
pages, the browser client.
"""
