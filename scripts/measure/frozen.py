"""Controls whose blocks stay as they were drawn."""


def freeze(blocks) -> None:
    """Make every parameter a buffer, in place: it counts, but is not trained."""
    for module in blocks.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            delattr(module, name)
            module.register_buffer(name, parameter.detach())
