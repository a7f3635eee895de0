import os

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
if device == "cpu":  # before triton is imported
    os.environ["TRITON_INTERPRET"] = "1"
