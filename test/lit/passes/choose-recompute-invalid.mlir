// RUN: not ds-opt %s --ds-choose-recompute="rules=(=recompute" 2>&1 | FileCheck %s --check-prefix=REGEX
// RUN: not ds-opt %s --ds-choose-recompute="rules=first=save,nothing.*=recompute" 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not ds-opt %s --ds-choose-recompute="rules=first=keep" 2>&1 | FileCheck %s --check-prefix=WHAT
// RUN: sed s/@microbatch/@forward/ %s | not ds-opt --ds-choose-recompute=level=1 2>&1 | FileCheck %s --check-prefix=FORM

// REGEX: error: deepstatic.recompute: "(" is no regular expression: parentheses not balanced
// NOTHING: error: deepstatic.recompute: "nothing.*" matches the name of no op of the forward; ds-opt compile --emit grad shows them
// WHAT: rules option: "first=keep" must end in =save or =recompute
// FORM: error: needs @microbatch, of one block; see ds-verify-train-form
func.func @microbatch(%x: tensor<4xf32> {train.input = "x"}) {
  %0 = train.exp %x : (tensor<4xf32>) -> tensor<4xf32> loc("first")
  return
}
