"""Procrustes analysis with deformations: one reference, one warp per shape, in closed form.

What is public stands in ``__init__.pyi``, where editors and type checkers read it, too. Each name
is loaded when it is first used, so that ``import defgpa`` and ``defgpa --help`` answer at once;
matplotlib, plotly, pandas and dask are loaded only by what needs them.
"""

import pkgutil

import lazy_loader

__version__ = "0.2.0"

__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)

# ``from defgpa import *`` takes no modules: some of them need what is not installed with defgpa
__all__ = sorted({*_names} - {module.name for module in pkgutil.iter_modules(__path__)})
