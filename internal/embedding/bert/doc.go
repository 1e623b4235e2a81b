// Package bert owns the model: it reads the weights of a BERT encoder from a folder
// with model.safetensors and config.json, keeps an int8 copy where the processor
// multiplies int8, and turns sequences of token ids into unit vectors by mean
// pooling (Reimers and Gurevych, Sentence-BERT, 2019, §3). It starts no goroutines
// and knows no texts; package embedding is its caller.
package bert
