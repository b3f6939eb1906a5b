// RUN: ds-opt %s --split-input-file --verify-diagnostics

plan.role @main ranks [0, 0] {
  // expected-error @+1 {{op space "disk" is none of device, host, nvme}}
  plan.arena @arena_c1 space "disk"
}
