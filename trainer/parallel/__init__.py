"""Layouts: how many processes hold and compute one model, from outside of it.

layout.py    the sizes of the axes, checked before anything starts
world.py     one process among its peers: mesh, sums, sharing a batch
together.py  what fails on one process ends all of them
apply.py     tensor parallel, recomputation, compile, FSDP2 and DDP applied to a model
context.py   a window divided over processes
stages.py    layers divided over processes
norm.py      the norm of a gradient that lies on several meshes
dry_run.py   memory and traffic of a layout, without its processes
"""
