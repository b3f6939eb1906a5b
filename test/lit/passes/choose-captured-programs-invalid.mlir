// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-choose-captured-programs

plan.role @offloaded ranks [0, 0] {
  plan.arena @device space device
  // expected-note @+1 {{the arena}}
  plan.arena @file space nvme
  // expected-error @+1 {{op is captured, but its role has arena @file in space nvme, which the host reads and writes while a program runs}}
  plan.program "step" captured {
  }
}
