// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @learning_rate_c1(%step: tensor<i64>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{schedule "Cosine" is none of constant, WarmupLR, WarmupDecayLR, WarmupCosineLR, LRRangeTest, OneCycle}}
  %0 = train.learning_rate "Cosine" %step {} : (tensor<i64>) -> tensor<f64>
  return
}
