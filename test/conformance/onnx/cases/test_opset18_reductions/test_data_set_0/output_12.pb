BReduceL2_12_0Jקת4@E
@\2@