"""Conversions as they go wrong in the wild."""

import torch


def one_forgotten(weight, form):
    return {"w": weight, "1+w": weight}[form].to(
        torch.promote_types(weight.dtype, torch.float32)
    )


def one_added_before_widening(weight, form):
    wide = torch.promote_types(weight.dtype, torch.float32)
    return ({"w": 0, "1+w": 1}[form] + weight).to(wide)


def one_added_to_both(weight, form):
    wide = torch.promote_types(weight.dtype, torch.float32)
    return {"w": 1, "1+w": 1}[form] + weight.to(wide)


def one_added_in_place(weight, form):
    wide = weight.to(torch.promote_types(weight.dtype, torch.float32))
    return wide.add_({"w": 0, "1+w": 1}[form])


def stays_low(weight, form):
    wide = weight.to(torch.promote_types(weight.dtype, torch.float32))
    return ({"w": 0, "1+w": 1}[form] + wide).to(weight.dtype)


def unknown_form_is_plain(weight, form):
    wide = weight.to(torch.promote_types(weight.dtype, torch.float32))
    return wide + {"1+w": 1}.get(form, 0)


GAIN_OF = [
    *(one_forgotten, one_added_before_widening, one_added_to_both),
    *(one_added_in_place, stays_low, unknown_form_is_plain),
]


def adds_the_one(gain, form):
    return (
        gain.to(torch.promote_types(gain.dtype, torch.float32))
        + {"w": 0, "1+w": 1}[form]
    )


def gain_as_it_is(gain, form):
    return gain.to(torch.promote_types(gain.dtype, torch.float32))


def stored_low(gain, form):
    return gain.bfloat16().to(gain.dtype) - {"w": 0, "1+w": 1}[form]


WEIGHT_OF = [adds_the_one, gain_as_it_is, stored_low]


def gain_on_the_rows(weight, bias, gain, shift):
    if weight.shape[0] != weight.shape[1]:
        gain = gain.mean()
    scaled = weight * (gain[:, None] if gain.ndim else gain)
    moved = None if shift is None else weight @ shift
    return scaled, bias if moved is None else moved if bias is None else moved + bias


def shift_through_the_scaled_matrix(weight, bias, gain, shift):
    scaled = weight * gain
    moved = None if shift is None else scaled @ shift
    return scaled, bias if moved is None else moved if bias is None else moved + bias


def shift_dropped(weight, bias, gain, shift):
    return weight * gain, bias


def old_bias_dropped(weight, bias, gain, shift):
    return weight * gain, bias if shift is None else weight @ shift


def divides_by_the_gain(weight, bias, gain, shift):
    moved = None if shift is None else weight @ shift
    return (
        weight / gain,
        bias if moved is None else moved if bias is None else moved + bias,
    )


def folds_in_place(weight, bias, gain, shift):
    moved = None if shift is None else weight @ shift
    bias = bias if moved is None else moved if bias is None else moved + bias
    return weight.mul_(gain), bias


FOLD = [
    *(gain_on_the_rows, shift_through_the_scaled_matrix, shift_dropped),
    *(old_bias_dropped, divides_by_the_gain, folds_in_place),
]


def _moved(state, names, convert, rename, chosen=lambda key: key.endswith(".weight")):
    return {
        rename(key): convert(tensor)
        if chosen(key) and any(f".{name}." in key for name in names)
        else tensor
        for key, tensor in state.items()
    }


def one_name_after_the_other(state, names, convert):
    def rename(key):
        for theirs, ours in names.items():
            key = key.replace(f".{theirs}.", f".{ours}.")
        return key

    return _moved(state, names, convert, rename)


def parts_of_words(state, names, convert):
    def rename(key):
        for theirs, ours in names.items():
            if theirs in key:
                return key.replace(theirs, ours, 1)
        return key

    return _moved(state, names, convert, rename)


def by_name(state, names, convert):
    return _moved(state, names, convert, lambda key: key)


def nothing_converted(state, names, convert):
    def rename(key):
        return ".".join(names.get(part, part) for part in key.split("."))

    return _moved(state, names, lambda weight: weight, rename)


def biases_converted_too(state, names, convert):
    def rename(key):
        return ".".join(names.get(part, part) for part in key.split("."))

    return _moved(state, names, convert, rename, lambda key: True)


def missing_norms_are_no_matter(state, names, convert):
    def rename(key):
        return ".".join(names.get(part, part) for part in key.split("."))

    return _moved(state, names, convert, rename)


PORTED = [
    *(one_name_after_the_other, parts_of_words, by_name, nothing_converted),
    *(biases_converted_too, missing_norms_are_no_matter),
]
