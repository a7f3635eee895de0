"""Wrong residual blocks that readers meet: built from a sublayer and a norm."""

from torch import nn


class _Block(nn.Module):
    def __init__(self, sublayer, norm):
        super().__init__()
        self.sublayer, self.norm = sublayer, norm


class PreNorm(_Block):
    def forward(self, x):
        return x + self.sublayer(self.norm(x))


class PostNorm(_Block):
    def forward(self, x):
        return self.norm(x + self.sublayer(x))


def norm_inside_the_branch(sublayer, norm):
    return PreNorm(sublayer, norm)


def norm_on_the_stream(sublayer, norm):
    return PostNorm(sublayer, norm)


class residual_after_the_norm(_Block):  # pytorch#61165
    def forward(self, x):
        x = self.norm(x)
        return x + self.sublayer(x)


class norm_of_the_branch_only(_Block):  # diy-llm#31
    def forward(self, x):
        return x + self.norm(self.sublayer(x))


class sandwich(_Block):  # right, but neither placement
    def forward(self, x):
        return x + self.norm(self.sublayer(self.norm(x)))


class residual_inside_the_sublayer(_Block):  # pml-book#709
    def forward(self, x):
        return self.sublayer(self.norm(x) + x)


class residual_forgotten_after_norm(_Block):
    def forward(self, x):
        return self.sublayer(self.norm(x))


class residual_forgotten_before_norm(_Block):
    def forward(self, x):
        return self.norm(self.sublayer(x))


class norm_forgotten(_Block):
    def forward(self, x):
        return x + self.sublayer(x)


class norm_before_and_after(_Block):
    def forward(self, x):
        return self.norm(x + self.sublayer(self.norm(x)))


class norm_twice(_Block):
    def forward(self, x):
        return self.norm(self.norm(x + self.sublayer(x)))


class sum_halved_before_the_norm(_Block):
    def forward(self, x):  # a norm all but hides it
        return self.norm((x + self.sublayer(x)) / 2)


class branch_subtracted_before_norm(_Block):
    def forward(self, x):
        return self.norm(x - self.sublayer(x))


class branch_subtracted(_Block):
    def forward(self, x):
        return x - self.sublayer(self.norm(x))


class residual_detached_before_norm(_Block):
    def forward(self, x):
        return self.norm(x.detach() + self.sublayer(x))


class residual_detached(_Block):
    def forward(self, x):
        return x.detach() + self.sublayer(self.norm(x))


class branch_detached_before_norm(_Block):
    def forward(self, x):
        return self.norm(x + self.sublayer(x.detach()))


class branch_detached(_Block):
    def forward(self, x):
        return x + self.sublayer(self.norm(x).detach())


class sum_written_into_the_input(_Block):
    def forward(self, x):
        y = x + self.sublayer(x)
        x.data.copy_(y.detach())
        return self.norm(y)


class norm_written_into_the_input(_Block):
    def forward(self, x):  # nano-vllm#170
        y = x + self.sublayer(self.norm(x))
        x.data.copy_(self.norm(x).detach())
        return y


class norm_without_parameters(_Block):
    def __init__(self, sublayer, norm):
        super().__init__(sublayer, norm)
        for parameter in norm.parameters():
            parameter.requires_grad_(False)

    def forward(self, x):
        return x + self.sublayer(self.norm(x))


class sublayer_called_twice(_Block):
    def forward(self, x):
        self.sublayer(x)  # a second draw of dropout, a second cache write
        return self.norm(x + self.sublayer(x))


WRONG_POST = [
    norm_inside_the_branch,
    residual_after_the_norm,
    norm_of_the_branch_only,
    sandwich,
    residual_inside_the_sublayer,
    residual_forgotten_before_norm,
    norm_forgotten,
    norm_before_and_after,
    norm_twice,
    sum_halved_before_the_norm,
    branch_subtracted_before_norm,
    residual_detached_before_norm,
    branch_detached_before_norm,
    sum_written_into_the_input,
    sublayer_called_twice,
]

WRONG_PRE = [
    norm_on_the_stream,
    residual_after_the_norm,
    norm_of_the_branch_only,
    sandwich,
    residual_inside_the_sublayer,
    residual_forgotten_after_norm,
    norm_forgotten,
    norm_before_and_after,
    branch_subtracted,
    residual_detached,
    branch_detached,
    norm_written_into_the_input,
    norm_without_parameters,
]
