// RUN: ds-opt %s --split-input-file --verify-diagnostics

plan.role @main ranks [0, 0] {
  // expected-error @+1 {{expected string or keyword containing one of the following enum values for attribute 'space' [device, host, nvme]}}
  plan.arena @unknown_space space disk
}
