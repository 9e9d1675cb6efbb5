import { Column, Entity } from 'typeorm'

@Entity('users')
export class User { @Column() name: string }

@Entity({ name: 'audit_logs' })
export class AuditLog {}

@Entity()
export class OrderLine {}
