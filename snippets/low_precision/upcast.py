import torch


def right_rms_norm(x, gain, eps=1e-6):
    wide = x.float()  # before the square
    r = (wide.square().mean(-1, keepdim=True) + eps).rsqrt()
    return (wide * r * gain.float()).to(x.dtype)  # one rounding, at the end


row, ones = torch.full((4,), 300.0).half(), torch.ones(4).half()
squared_in_16 = row.square().mean()  # infinity
print("squared in float16:", (row * squared_in_16.rsqrt()).tolist())
print("squared in float32:", right_rms_norm(row, ones).tolist())
