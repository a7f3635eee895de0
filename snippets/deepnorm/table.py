from snippets.deepnorm.coefficients import coefficients

print("encoder  decoder   stack     alpha   beta")
for n, m in ((12, 0), (0, 12), (0, 100), (0, 1000), (100, 100), (500, 500)):
    for name, (alpha, beta) in coefficients(n, m).items():
        print(f"{n:7} {m:8}   {name}  {alpha:6.2f} {beta:6.3f}")
