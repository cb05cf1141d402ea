"""Which coordinates a statistic analysed, and how many landmarks of them were estimated."""

from __future__ import annotations

from dataclasses import dataclass

_COMPLETED = {
    "statistics": "from the statistics of shape",
    "spline": "by splines from the mean shape",
    "warp": "by the warps",
}


@dataclass(frozen=True)
class Provenance:
    """Which coordinates a statistic analysed, and how many of them were estimated.

    Attributes
    ----------
    space : {"superimposed", "back_projected", "aligned", "given"}
        The specimens in their classical tangent space, the reference projected back into each,
        what the warps leave, or coordinates that were declared superimposed.
    n_specimens, n_landmarks : int
        The size of the sample; a landmark counts once in every specimen.
    n_completed : int
        Landmarks that were missing and estimated.
    method : str
        How they were estimated; empty where none was.
    n_imputations : int
        Completions that were drawn and pooled; 0 for the expected one alone.
    n_species : int
        Species whose mean shapes were analysed; 0 for the specimens themselves.
    n_rejected : int
        Landmarks that a robust fit rejected.
    rejected : {"measured", "completed"}
        Whether these are analysed as measured, or are among the completed ones.
    n_moved : int
        Landmarks of little weight that were moved towards where the others predict them.
    """

    space: str
    n_specimens: int
    n_landmarks: int
    n_completed: int = 0
    method: str = ""
    n_imputations: int = 0
    n_species: int = 0
    n_rejected: int = 0
    rejected: str = "measured"
    n_moved: int = 0

    def __str__(self) -> str:
        n = f"{self.n_specimens} specimens"
        if self.n_species:
            n += f", averaged to {self.n_species} species"
        where = {
            "superimposed": f"Superimposed coordinates of {n} (classical tangent space)",
            "back_projected": f"Reference projected back into {n}: only what the warps follow",
            "aligned": f"Residuals that the warps of {n} leave",
            "given": f"Coordinates of {n} as given, declared superimposed",
        }[self.space]
        facts = (self._describe_completion(), self._describe_weights(), self._describe_rejection())
        return f"{where}; {''.join(facts)}."

    def _describe_weights(self) -> str:
        if not self.n_moved:
            return ""
        return f"; {self.n_moved:,} of little weight moved towards their prediction"

    def _describe_completion(self) -> str:
        if not self.n_completed:
            return "no landmark completed"
        share = self.n_completed / self.n_landmarks
        how = _COMPLETED.get(self.method, f"by {self.method}")
        count = (
            f"{self.n_completed:,} of {self.n_landmarks:,} landmarks ({share:.1%}) completed {how}"
        )
        if self.space == "back_projected":
            return f"{self.n_completed:,} of {self.n_landmarks:,} landmarks ({share:.1%}) missing"
        if self.n_imputations:
            return f"{count}, {self.n_imputations} draws pooled"
        return f"{count}, which understates their variance"

    def _describe_rejection(self) -> str:
        if not self.n_rejected:
            return ""
        count = f"{self.n_rejected:,} that the robust fit rejected"
        if self.space == "back_projected":
            return f"; {count} not followed"
        are = "is" if self.n_rejected == 1 else "are"
        if self.rejected == "measured":
            return f"; {count} {are} analysed as measured"
        return f"; {count} {are} among these"

    def to_dict(self) -> dict[str, object]:
        """Return the facts as plain values for JSON."""
        return {
            "space": self.space,
            "specimens": self.n_specimens,
            "landmarks": self.n_landmarks,
            "landmarks_completed": self.n_completed,
            "completion": self.method or None,
            "imputations": self.n_imputations,
            "landmarks_rejected": self.n_rejected,
            "rejected": self.rejected if self.n_rejected else None,
            "landmarks_moved_by_weight": self.n_moved,
        }
