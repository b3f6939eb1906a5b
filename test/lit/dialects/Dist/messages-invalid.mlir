// RUN: ds-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{op leads from 1 to 1; these must be two coordinates of "pipe"}}
dist.channel @channel_c1_same axis "pipe" from 1 to 1

// -----

// expected-error @+1 {{op leads from -1 to 1; these must be two coordinates of "pipe"}}
dist.channel @channel_c1_negative axis "pipe" from -1 to 1

// -----

dist.fragment @send_c1 phase forward stage 0 {
  %0 = train.constant dense<0.0> : tensor<4xf32>
  // expected-error @+1 {{op @c is not a dist.channel}}
  dist.send %0 on @c : tensor<4xf32>
}

// -----

dist.value @x : tensor<4xf32>
dist.fragment @receive_c1_channel phase forward stage 0 {
  // expected-error @+1 {{op @c is not a dist.channel}}
  dist.receive [@x] on @c
}

// -----

dist.channel @c axis "pipe" from 0 to 1
dist.fragment @receive_c1_value phase forward stage 0 {
  // expected-error @+1 {{op @x is not a dist.value}}
  dist.receive [@x] on @c
}

// -----

dist.channel @c axis "pipe" from 0 to 1
// expected-note @below {{declared here}}
dist.value @x : tensor<4xf32> input "x"
dist.fragment @receive_c1_input phase forward stage 0 {
  // expected-error @+1 {{op @x is the graph input "x"; only a feed writes it}}
  dist.receive [@x] on @c
}
