package embedding
