"""The interface of scikit-learn: parameters, tags, containers, and clear errors."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from defgpa.alignment import Alignment
from defgpa.arrays import Array
from defgpa.errors import import_extra
from defgpa.warps import ThinPlateSpline

if TYPE_CHECKING:
    import pandas as pd


class SklearnInterface(BaseEstimator):
    """Behave as scikit-learn expects; the estimators themselves say how shapes are aligned."""

    alignment_: Alignment
    output: str = "aligned"

    def __new__(cls, *args: object, **parameters: object) -> Self:
        """Raise a TypeError that says where an unknown parameter belongs."""
        accepted = inspect.signature(cls).parameters
        for name in parameters:
            if name not in accepted:
                raise TypeError(_explain_parameter(cls.__name__, name, list(accepted)))
        return super().__new__(cls)

    def __getattr__(self, name: str) -> Any:
        if name in ("alignment_", "reference_", "warps_"):
            raise NotFittedError(
                f"This {type(self).__name__} has not been fitted yet: call fit(shapes) first."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_is_fitted__(self) -> bool:
        return "alignment_" in vars(self)

    def __sklearn_tags__(self) -> object:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.allow_nan = True
        return tags

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        parameters = super().__repr__(N_CHAR_MAX)
        if "alignment_" not in vars(self):
            return parameters
        n, m, d = self.alignment_.shapes.points.shape
        return f"{parameters} fitted to {n} shapes, {m} landmarks, {d}-D"

    def set_params(self, **params: object) -> Self:
        """Set parameters as in scikit-learn; ``warp__smoothing`` puts another warp in its place."""
        nested: dict[str, dict[str, object]] = {}
        for name in [name for name in params if "__" in name]:
            owner, _, key = name.partition("__")
            nested.setdefault(owner, {})[key] = params.pop(name)
        super().set_params(**params)
        for owner, values in nested.items():
            if owner not in self.get_params(deep=False):
                super().set_params(**{owner: values})  # which says what there is
            component = getattr(self, owner)
            if component is None and owner == "warp":
                component = getattr(self, "warp_model", None)
            setattr(self, owner, component.set_params(**values))
        return self

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose the container that ``transform`` and ``fit_transform`` return.

        Parameters
        ----------
        transform : {"default", "flat", "pandas"}, optional
            ``"default"``: an array (n, m, d). ``"flat"``: an array (n, m·d), one column a
            coordinate, which other steps of a scikit-learn pipeline take. ``"pandas"``: a
            DataFrame of the same columns, named by ``get_feature_names_out``. None changes nothing.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.decomposition import PCA
        >>> from sklearn.pipeline import make_pipeline
        >>> import defgpa
        >>> rng = np.random.default_rng(0)
        >>> shapes = rng.normal(size=(30, 2)) + 0.1 * rng.normal(size=(8, 30, 2))
        >>> align = defgpa.DefGPA(output="superimposed").set_output(transform="flat")
        >>> make_pipeline(align, PCA(2)).fit_transform(shapes).shape
        (8, 2)
        """
        if transform is not None:
            _require_container(transform)
            self._sklearn_output_config = {"transform": transform}
        return self

    def _wrap_points(self, points: Array, names: Sequence[str], space: str) -> Array | pd.DataFrame:
        """Return points (n, m, d) of a space in the container that ``set_output`` chose."""
        container = getattr(self, "_sklearn_output_config", {}).get("transform")
        container = container or get_config()["transform_output"]
        _require_container(container)
        if container == "default":
            return points
        flat = points.reshape(len(points), -1)
        if container == "flat":
            return flat
        pandas = import_extra("pandas", 'This needs pandas: pip install "defgpa[tables]".')
        return pandas.DataFrame(flat, index=list(names), columns=self._name_features(space))

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Name the coordinates that ``transform`` returns, with their space.

        Returns
        -------
        ndarray of shape (n_landmarks · n_dims,)
            ``"aligned: apex_x"``, ``"aligned: apex_y"``, …, in the order of the flattened points.
        """
        return self._name_features(self.output)

    def _name_features(self, space: str) -> NDArray[np.object_]:
        shapes = self.alignment_.shapes
        axes = "xyz"[: shapes.n_dims]
        names = [f"{space}: {label}_{axis}" for label in shapes.landmarks for axis in axes]
        return np.array(names, dtype=object)


def _explain_parameter(owner: str, name: str, accepted: Sequence[str]) -> str:
    """Explain an unknown parameter by the object that has one of this name, if there is one."""
    if name == "scale" and "proportions" in accepted:
        return (
            f"{owner} has no 'scale': write {owner}(warp, proportions=[λ1, …, λd]) to state the "
            "eigenvalues of the reference covariance, or proportions='prior' to estimate them as "
            "in the paper."
        )
    if name in inspect.signature(ThinPlateSpline).parameters and "warp" in accepted:
        return (
            f"{owner} has no '{name}': it is a parameter of the warp. Write "
            f"{owner}(ThinPlateSpline({name}=...))."
        )
    return (
        f"{owner} got an unexpected keyword argument {name!r}. Its parameters are: "
        f"{', '.join(accepted)}."
    )


def _require_container(transform: object) -> None:
    """Raise a ValueError unless ``set_output`` has such a container."""
    if transform not in ("default", "flat", "pandas"):
        raise ValueError(
            "The 'transform' parameter of set_output must be 'default', 'flat' or 'pandas'. "
            f"Got {transform!r} instead."
        )
