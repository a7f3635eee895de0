from snippets.deepnorm.coefficients import Coefficients, coefficients


def budget(layers: int, alpha: float, beta: float) -> float:
    """4 N beta^2 / alpha^2: the output's change for an SGD step of 1."""
    return 4 * layers * beta**2 / alpha**2


paper = coefficients(decoder_layers=70)["decoder"]
choices = {
    "Post-Norm": Coefficients(1.0, 1.0),
    "alpha only": Coefficients(paper.alpha, 1.0),
    "beta only": Coefficients(1.0, paper.beta),
    "DeepNorm": paper,
    "GLM-130B": Coefficients(140**0.5, 140**-0.5),
}
print("N = 70       alpha    beta    budget")
for name, (alpha, beta) in choices.items():
    size = budget(70, alpha, beta)
    print(f"{name:<12}{alpha:6.2f}  {beta:6.3f}  {size:8.3f}")
