from snippets.examine_your_model.terminal import report

report("ported:decoder")
