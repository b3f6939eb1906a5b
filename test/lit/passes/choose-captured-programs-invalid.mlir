// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-choose-captured-programs

plan.role @offloaded ranks [0, 0] {
  plan.arena @device space device
  // expected-note @+1 {{the queue}}
  plan.queue @nvme_read kind io
  // expected-error @+1 {{op is captured, but its role has queue @nvme_read of kind io, whose work the host does while a program runs}}
  plan.program "step" captured {
  }
}
