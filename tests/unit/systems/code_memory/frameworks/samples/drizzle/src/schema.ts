import { integer, pgTable, text } from 'drizzle-orm/pg-core'

export const users = pgTable('users', {
  id: integer('id').primaryKey(),
})

export const lineItems = pgTable('line_items', { note: text('note') }, (table) => [table.note])
