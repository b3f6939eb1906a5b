//===- Passes.td - every pass, in the order of docs/reference/passes.md ---===//
include "compiler/passes/train/Passes.td"
include "compiler/passes/tensor/Passes.td"
include "compiler/passes/fusion/Passes.td"
include "compiler/passes/recompute/Passes.td"
include "compiler/passes/pipeline/Passes.td"
include "compiler/passes/zero/Passes.td"
include "compiler/passes/offload/Passes.td"
include "compiler/passes/plan/Passes.td"
